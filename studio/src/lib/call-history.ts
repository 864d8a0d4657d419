import type { Message } from '../../../src/client/index.ts';
import { commonItems } from '../../../src/core/diff.ts';
import type { ModelCall } from './model-calls.ts';
import type { TraceSpan } from './traces.ts';

/** The model call before this one in the same session, also one of an earlier turn. */
export function callBefore(spans: readonly TraceSpan[], span: TraceSpan): TraceSpan | undefined {
  const byId = new Map(spans.map((each) => [each.spanId, each]));
  const sessionOf = (each: TraceSpan | undefined): unknown => {
    let at = each;
    while (at && at.attributes['waymark.session.id'] === undefined)
      at = byId.get(at.parentId ?? '');
    return at?.attributes['waymark.session.id'];
  };
  const session = sessionOf(span);
  const at = spans.indexOf(span);
  return spans
    .slice(0, Math.max(at, 0))
    .findLast((each) => each.hasContent && sessionOf(each) === session);
}

/** The positions of the messages that the call before did not know: neither sent nor answered. */
export function newMessages(call: ModelCall, before: ModelCall | undefined): ReadonlySet<number> {
  const { messages } = call.request;
  if (before === undefined) return new Set();
  const known = [
    ...before.request.messages,
    ...(before.response ? [before.response.message] : []),
  ].map(keyOf);
  const same = new Set(
    commonItems(known, messages.map(keyOf), { isEqual: Object.is, maxEdits: 400 }).map(
      ([, to]) => to,
    ),
  );
  return new Set([...messages.keys()].filter((at) => !same.has(at)));
}

// The part of a message that a model reads; its metadata may have changed since.
function keyOf({ role, content }: Message): string {
  return JSON.stringify([role, content.map(({ metadata: _, ...part }) => part)]);
}
