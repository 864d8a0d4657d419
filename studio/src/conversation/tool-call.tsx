import type { ReactNode } from 'react';
import type { ToolRequestPart, ToolResponsePart } from '../../../src/client/index.ts';
import { isInterrupted } from '../../../src/protocol/messages.ts';
import { duration } from '../lib/format.ts';
import { brief, isRecord } from '../lib/json.ts';
import type { ToolSpan } from '../lib/span-tree.ts';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import { Media } from './part-view.tsx';

/** A tool call: one line, and folded open what it was asked and what it answered. */
export function ToolCall({
  request,
  response,
  span,
  isLive,
}: {
  readonly request: ToolRequestPart;
  readonly response: ToolResponsePart | undefined;
  /** How long it took and what it threw, where that is known. */
  readonly span: ToolSpan | undefined;
  /** Whether its turn still runs. */
  readonly isLive: boolean;
}): ReactNode {
  const { name, input } = request.toolRequest;
  const state = stateOf(request, response, isLive);
  return (
    <details className="fold tool" data-state={state}>
      <summary>
        <Icon name="chevron" size={12} />
        <span className="tool-name">{name}</span>
        <span className="tool-input">{input === undefined ? '' : brief(input, 90)}</span>
        <span className="tool-state">
          {state === 'done' && span !== undefined ? duration(span.ms) : words[state]}
        </span>
      </summary>
      <div className="fold-body">
        <p className="fold-title">Input</p>
        <JsonTree value={input} label={`Input of ${name}`} open={2} />
        {response && (
          <>
            <p className="fold-title">{titles[state] ?? 'Output'}</p>
            {state === 'failed' && span?.error ? (
              <FaultText text={span.error.text} />
            ) : (
              <JsonTree value={response.toolResponse.output} label={`Output of ${name}`} open={2} />
            )}
            <MediaOf response={response} />
          </>
        )}
      </div>
    </details>
  );
}

type State = 'running' | 'waiting' | 'done' | 'failed' | 'declined' | 'stopped' | 'open';

const words: Readonly<Record<State, string>> = {
  running: 'running…',
  waiting: 'waiting for an answer',
  done: 'done',
  failed: 'failed',
  declined: 'declined',
  stopped: 'stopped',
  open: 'not answered',
};

const titles: Partial<Record<State, string>> = {
  failed: 'Error',
  declined: 'Sent to the model',
  stopped: 'Sent to the model',
};

function stateOf(
  request: ToolRequestPart,
  response: ToolResponsePart | undefined,
  isLive: boolean,
): State {
  if (response) return endOf(response);
  if (isInterrupted(request)) return 'waiting';
  if (request.metadata?.pendingOutput !== undefined) return 'done';
  return isLive ? 'running' : 'open';
}

// A person who said no, and a turn that was stopped, are no failures of the tool.
function endOf({ metadata }: ToolResponsePart): State {
  const error = metadata?.error;
  if (error === undefined) return 'done';
  const reason = isRecord(error) ? error.reason : undefined;
  return reason === 'declined' ? 'declined' : reason === 'aborted' ? 'stopped' : 'failed';
}

function MediaOf({ response }: { readonly response: ToolResponsePart }): ReactNode {
  return response.toolResponse.content?.map((part, at) => {
    const { media } = part;
    if (!isRecord(media) || typeof media.url !== 'string') return null;
    const contentType = typeof media.contentType === 'string' ? media.contentType : undefined;
    // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place
    return <Media key={at} media={{ url: media.url, contentType }} />;
  });
}
