import type { ReactNode } from 'react';
import type { ToolRequestPart, ToolResponsePart } from '../../../src/client/index.ts';
import { isInterrupted } from '../../../src/protocol/messages/tool-round.ts';
import { duration } from '../lib/format.ts';
import { brief, isRecord } from '../lib/json.ts';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import { Media } from './part-view.tsx';

/** A tool call: one line, and folded open what it was asked and what it answered. */
export function ToolCall({
  request,
  response,
  ms,
  isLive,
}: {
  readonly request: ToolRequestPart;
  readonly response: ToolResponsePart | undefined;
  /** How long it took, where that is known. */
  readonly ms: number | undefined;
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
          {state === 'done' && ms !== undefined ? duration(ms) : words[state]}
        </span>
      </summary>
      <div className="fold-body">
        <p className="fold-title">Input</p>
        <JsonTree value={input} label={`Input of ${name}`} open={2} />
        {response && (
          <>
            <p className="fold-title">{state === 'failed' ? 'Error' : 'Output'}</p>
            <JsonTree value={response.toolResponse.output} label={`Output of ${name}`} open={2} />
            <MediaOf response={response} />
          </>
        )}
      </div>
    </details>
  );
}

type State = 'running' | 'waiting' | 'done' | 'failed' | 'open';

const words: Readonly<Record<State, string>> = {
  running: 'running…',
  waiting: 'waits for an answer',
  done: 'done',
  failed: 'failed',
  open: 'not answered',
};

function stateOf(
  request: ToolRequestPart,
  response: ToolResponsePart | undefined,
  isLive: boolean,
): State {
  if (response) return response.metadata?.error === undefined ? 'done' : 'failed';
  if (isInterrupted(request)) return 'waiting';
  if (request.metadata?.pendingOutput !== undefined) return 'done';
  return isLive ? 'running' : 'open';
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
