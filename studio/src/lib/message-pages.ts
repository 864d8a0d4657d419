import type { MessagePage, State } from '../../../src/client/index.ts';

/** How many messages of a conversation are loaded at a time. */
export const pageSize = 100;

/** The last messages of a state, which is all that most of the page needs. */
export const lastPage: { readonly messages: MessagePage } = { messages: { last: pageSize } };

/** A state with its last messages, the first of which stands at position `from`. */
export interface PagedState {
  readonly state: State | undefined;
  readonly from: number;
}

/** Two states with their messages from the same position on, so that these can be compared. */
export function alignStates(
  a: PagedState,
  b: PagedState,
): readonly [State | undefined, State | undefined] {
  const from = Math.max(a.from, b.from);
  return [messagesFrom(a, from), messagesFrom(b, from)];
}

function messagesFrom({ state, from }: PagedState, position: number): State | undefined {
  if (state === undefined || position === from) return state;
  return { ...state, messages: (state.messages ?? []).slice(position - from) };
}
