import type { ReactNode } from 'react';
import { isRecord } from '../lib/json.ts';
import { placeHash } from '../lib/place.ts';
import { Icon } from '../ui/icon.tsx';
import { ToolForm } from './tool-form.tsx';
import type { ListedTool } from './use-sources.ts';

/** A tool in a list; open, it has a form to run it. Which one is open is in the address, so a reload runs nothing. */
export function ToolItem({
  owner,
  tool,
  isOpen,
}: {
  readonly owner: { readonly agent: string } | { readonly source: string };
  readonly tool: ListedTool;
  readonly isOpen: boolean;
}): ReactNode {
  const { name, description, hints } = tool;
  return (
    <li className="tool-item" data-open={isOpen || undefined}>
      <div className="run-head">
        <a
          className="tool-link"
          href={placeHash({ view: 'tools', ...(!isOpen && { ...owner, tool: name }) })}
          aria-expanded={isOpen}
        >
          <Icon name="tool" size={14} /> {name}
        </a>
        {hintWords(hints).map((word) => (
          <span className="chip" key={word}>
            {word}
          </span>
        ))}
        {description !== undefined && (
          <span className="quiet tool-about" dir="auto">
            {description}
          </span>
        )}
      </div>
      {isOpen && <ToolForm name={{ ...owner, tool: name }} schema={tool.inputSchema} />}
    </li>
  );
}

function hintWords(hints: unknown): readonly string[] {
  if (!isRecord(hints)) return [];
  return [
    ...(hints.readOnlyHint === true ? ['read only'] : []),
    ...(hints.destructiveHint === true ? ['destructive'] : []),
  ];
}
