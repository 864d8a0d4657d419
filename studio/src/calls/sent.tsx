import type { ReactNode } from 'react';
import { plural } from '../lib/format.ts';
import { isRecord } from '../lib/json.ts';
import type { ModelCall, SentTool } from '../lib/model-calls.ts';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import { SentMessage } from './sent-message.tsx';

/** The request of a model call: instructions, messages, tools and settings. */
export function Sent({
  call: { request, omitted = 0 },
  fresh,
}: {
  readonly call: ModelCall;
  /** The positions of the messages that are new in this call. */
  readonly fresh: ReadonlySet<number>;
}): ReactNode {
  const { messages, tools = [], toolChoice, config, output } = request;
  const placed = messages.map((message, at) => ({ message, at }));
  const system = placed.filter(({ message }) => message.role === 'system');
  const others = placed.filter(({ message }) => message.role !== 'system');
  const from = others.findIndex(({ at }) => fresh.has(at));
  // Without a mark, the last message is what the model answers.
  const first = from === -1 ? Math.max(others.length - 1, 0) : from;
  const settings = {
    ...(isRecord(config) && config),
    ...(toolChoice !== undefined && { toolChoice }),
  };
  return (
    <>
      {system.length > 0 && (
        <section>
          <h3>System prompt</h3>
          {system.map(({ message, at }) => (
            <SentMessage key={at} message={message} isNew={fresh.has(at)} />
          ))}
        </section>
      )}
      <section>
        <h3>
          Messages <span className="count">{others.length + omitted}</span>
        </h3>
        {omitted > 0 && (
          <p className="quiet">
            The first {plural(omitted, 'message')} of this large call are not recorded.
          </p>
        )}
        {first > 0 && (
          <details className="fold">
            <summary>
              <Icon name="chevron" size={12} /> {plural(first, 'earlier message')}
            </summary>
            <div className="fold-body">
              {others.slice(0, first).map(({ message, at }) => (
                <SentMessage key={at} message={message} isNew={false} />
              ))}
            </div>
          </details>
        )}
        {others.slice(first).map(({ message, at }) => (
          <SentMessage key={at} message={message} isNew={fresh.has(at)} />
        ))}
      </section>
      {tools.length > 0 && (
        <section>
          <h3>
            Tools <span className="count">{tools.length}</span>
          </h3>
          {tools.map((tool) => (
            <Tool key={tool.name} tool={tool} />
          ))}
        </section>
      )}
      {Object.keys(settings).length > 0 && (
        <section>
          <h3>Settings</h3>
          <JsonTree value={settings} label="Settings" open={2} />
        </section>
      )}
      {output !== undefined && output.format !== 'text' && (
        <section>
          <h3>Output</h3>
          <JsonTree value={output} label="Output" />
        </section>
      )}
    </>
  );
}

function Tool({
  tool: { name, description, inputSchema },
}: {
  readonly tool: SentTool;
}): ReactNode {
  return (
    <details className="fold">
      <summary>
        <Icon name="chevron" size={12} />
        <span className="tool-name">{name}</span>
        <span className="tool-input">{description}</span>
      </summary>
      <div className="fold-body">
        {description !== undefined && <p dir="auto">{description}</p>}
        <JsonTree value={inputSchema} label={`Input schema of ${name}`} open={3} />
      </div>
    </details>
  );
}
