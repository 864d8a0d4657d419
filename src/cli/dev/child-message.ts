import type { ErrorBody } from '../../core/error.ts';
import type { Served } from './serve-file.ts';

/** What the process that serves tells the one that watches it. */
export type ChildMessage =
  | { readonly type: 'loaded'; readonly path: string }
  | { readonly type: 'serving'; readonly served: Served }
  | { readonly type: 'failed'; readonly error: ErrorBody; readonly stack?: string };

/** What the watching process asks for. */
export interface ParentMessage {
  readonly type: 'close';
}

/** Set in the environment of a process that is watched. */
export const childMark = 'WAYMARK_DEV_CHILD';
