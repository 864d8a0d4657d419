import type { ErrorBody } from '../../core/error.ts';
import type { Served } from './serve-file.ts';

/** A message of the serving process to its supervisor. */
export type ChildMessage =
  | { readonly type: 'loaded'; readonly path: string }
  | { readonly type: 'serving'; readonly served: Served }
  | { readonly type: 'failed'; readonly error: ErrorBody; readonly stack?: string };

/** A message of the supervisor. */
export interface ParentMessage {
  readonly type: 'close';
}

/** Set in the environment of the serving process. */
export const childMark = 'WAYMARK_DEV_CHILD';
