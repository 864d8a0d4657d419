import { type ReactNode, useMemo, useState } from 'react';
import { toCode } from '../lib/call-code.ts';
import { newMessages } from '../lib/call-history.ts';
import { count, duration } from '../lib/format.ts';
import type { ModelCall } from '../lib/model-calls.ts';
import type { TraceSpan } from '../lib/traces.ts';
import { cacheText, costText } from '../lib/usage.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { LongText } from '../ui/long-text.tsx';
import { Answer } from './answer.tsx';
import { Sent } from './sent.tsx';

const forms = ['Readable', 'JSON', 'Code'] as const;
type Form = (typeof forms)[number];

/** The request and response of a model call. */
export function ModelCallView({
  call,
  before,
  span,
}: {
  readonly call: ModelCall;
  /** The call before it in the same session, to tell which messages are new. */
  readonly before: ModelCall | undefined;
  readonly span: TraceSpan;
}): ReactNode {
  const [form, setForm] = useState<Form>('Readable');
  const fresh = useMemo(() => newMessages(call, before), [call, before]);
  const text = useMemo(
    () => (form === 'Code' ? toCode(call) : JSON.stringify(call, null, 2)),
    [form, call],
  );
  return (
    <div className="model-call">
      <CallFacts call={call} span={span} />
      <div className="call-bar">
        <span className="segments">
          {forms.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === form}
              onClick={() => setForm(name)}
            >
              {name}
            </button>
          ))}
        </span>
        <CopyButton text={text} label={form === 'Code' ? 'Copy as code' : 'Copy as JSON'} />
      </div>
      {form === 'Readable' ? (
        <>
          <Sent call={call} fresh={fresh} />
          <Answer call={call} span={span} />
        </>
      ) : (
        <LongText
          text={text}
          language={form === 'Code' ? 'ts' : 'json'}
          name={form === 'Code' ? 'The call as code' : 'The call as JSON'}
        />
      )}
    </div>
  );
}

function CallFacts({
  call: { model, response },
  span,
}: {
  readonly call: ModelCall;
  readonly span: TraceSpan;
}): ReactNode {
  const usage = response?.usage ?? {};
  const first = span.attributes['gen_ai.response.time_to_first_chunk'];
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Model', model],
    ['Finish reason', response?.finishReason ?? (span.error ? 'failed' : undefined)],
    ['Input', tokens(usage.inputTokens)],
    ['Cache', cacheText(usage)],
    ['Output', tokens(usage.outputTokens)],
    ['Reasoning', tokens(usage.reasoningTokens)],
    ['Cost', usage.cost && costText(usage)],
    ['First token', typeof first === 'number' ? duration(first * 1_000) : undefined],
    ['Took', span.endedAt === undefined ? 'running' : duration(span.endedAt - span.startedAt)],
  ];
  return (
    <dl className="facts">
      {facts.map(
        ([name, value]) =>
          value !== undefined && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function tokens(n: number | undefined): string | undefined {
  return n === undefined ? undefined : `${count(n)} ${n === 1 ? 'token' : 'tokens'}`;
}
