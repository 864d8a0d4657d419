import type { ReactNode } from 'react';
import { useWorkbench } from '../shell/workbench.tsx';

/** The content of an empty session: what to type, and what will happen then. */
export function Welcome(): ReactNode {
  const { info, commands } = useWorkbench();
  const examples = examplesIn(info.description ?? '');
  return (
    <div className="welcome">
      <h1>{info.name}</h1>
      {info.description && <p className="welcome-about">{info.description}</p>}
      {examples.length > 0 && (
        <p className="welcome-examples">
          {examples.map((text) => (
            <button
              key={text}
              type="button"
              className="button"
              onClick={() => void commands.send({ message: { role: 'user', content: [{ text }] } })}
            >
              {text}
            </button>
          ))}
        </p>
      )}
      <ol className="welcome-steps">
        <li>
          <strong>Write a message below.</strong> The answer streams in here. Open a tool call for
          its details, and approve calls that need it.
        </li>
        <li>
          <strong>Every turn saves a snapshot</strong> in the timeline, with its messages, state and
          files.
        </li>
        <li>
          <strong>Restore a snapshot and branch.</strong> Nothing is overwritten; the old branch
          stays beside the new one.
        </li>
      </ol>
      {info.tools && info.tools.length > 0 && (
        <p className="quiet">Tools: {info.tools.map(({ name }) => name).join(', ')}</p>
      )}
      {info.skills && info.skills.length > 0 && (
        <p className="quiet">Skills: {info.skills.map(({ name }) => name).join(', ')}</p>
      )}
    </div>
  );
}

/** The texts to try in a description, in quotation marks. */
function examplesIn(description: string): readonly string[] {
  return [...description.matchAll(/[“"]([^”"]{3,60})[”"]/g)]
    .map(([, text = '']) => text)
    .filter((text) => text.includes(' '));
}
