import { type ReactNode, useState } from 'react';
import { brief, isRecord, type Json } from '../lib/json.ts';
import { pathText } from '../lib/json-changes.ts';
import { Icon } from './icon.tsx';

type Path = readonly (string | number)[];

interface TreeOptions {
  /** Paths to be marked, and opened, because they changed. */
  readonly changed?: ReadonlySet<string>;
  /** How many levels are open at first. @default 1 */
  readonly open?: number;
}

/** More than so many fields or items come a piece at a time. */
const piece = 100;

/** A JSON document that folds open and shut. */
export function JsonTree({
  value,
  label,
  ...options
}: { readonly value: Json | undefined; readonly label: string } & TreeOptions): ReactNode {
  return (
    <fieldset className="json-tree" aria-label={label}>
      {isBranch(value) ? (
        <Branch value={value} path={[]} depth={0} {...options} />
      ) : (
        <Leaf value={value} />
      )}
    </fieldset>
  );
}

function Branch({
  value,
  path,
  depth,
  ...options
}: { readonly value: Json; readonly path: Path; readonly depth: number } & TreeOptions): ReactNode {
  const [shown, setShown] = useState(piece);
  const entries = entriesOf(value);
  if (entries.length === 0)
    return <span className="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>;
  return (
    <ul>
      {entries.slice(0, shown).map(([key, child]) => (
        <Entry
          key={key}
          name={key}
          value={child}
          path={[...path, key]}
          depth={depth}
          {...options}
        />
      ))}
      {entries.length > shown && (
        <li>
          <button type="button" className="text-button" onClick={() => setShown(shown + piece * 5)}>
            {entries.length - shown} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Entry({
  name,
  value,
  path,
  depth,
  changed,
  open = 1,
}: {
  readonly name: string | number;
  readonly value: Json;
  readonly path: Path;
  readonly depth: number;
} & TreeOptions): ReactNode {
  const text = pathText(path);
  const isChanged = changed?.has(text) ?? false;
  const holdsChange = !isChanged && changed !== undefined && holds(changed, text);
  const [isOpen, setOpen] = useState(depth + 1 < open || holdsChange);
  const options = { open, ...(changed && { changed }) };
  if (!isBranch(value) || entriesOf(value).length === 0) {
    return (
      // A changed value is rendered again, to restart the fade of its highlight.
      <li
        key={isChanged ? brief(value) : 'same'}
        className={isChanged ? 'json-leaf changed' : 'json-leaf'}
      >
        <Key name={name} />
        {isBranch(value) ? (
          <span className="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>
        ) : (
          <Leaf value={value} />
        )}
        {isChanged && <span className="changed-word">changed</span>}
      </li>
    );
  }
  return (
    <li className={isChanged ? 'changed' : undefined}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Icon name="chevron" size={12} />
          <Key name={name} />
          <span className="json-brief">{isOpen ? sizeOf(value) : brief(value, 60)}</span>
          {isChanged && <span className="changed-word">changed</span>}
        </summary>
        {isOpen && <Branch value={value} path={path} depth={depth + 1} {...options} />}
      </details>
    </li>
  );
}

function Key({ name }: { readonly name: string | number }): ReactNode {
  return <span className="json-key">{name}</span>;
}

function Leaf({ value }: { readonly value: Json | undefined }): ReactNode {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== 'string') {
    return (
      <span className={`json-${value === null ? 'null' : typeof value}`}>
        {value === undefined ? 'not set' : String(value)}
      </span>
    );
  }
  const isLong = value.length > 300;
  return (
    <span className="json-string" dir="auto">
      {isLong && !isWhole ? `${value.slice(0, 300)}…` : value}
      {isLong && (
        <button type="button" className="text-button" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'less' : `all ${value.length.toLocaleString()} characters`}
        </button>
      )}
    </span>
  );
}

function isBranch(
  value: Json | undefined,
): value is Exclude<Json, string | number | boolean | null> {
  return typeof value === 'object' && value !== null;
}

function entriesOf(value: Json): readonly (readonly [string | number, Json])[] {
  if (Array.isArray(value)) return value.map((item, at) => [at, item] as const);
  if (!isRecord(value)) return [];
  return Object.entries(value).map(([key, field]) => [key, field ?? null] as const);
}

function sizeOf(value: Json): string {
  const size = entriesOf(value).length;
  return Array.isArray(value) ? `[${size}]` : `{${size}}`;
}

function holds(changed: ReadonlySet<string>, path: string): boolean {
  for (const each of changed)
    if (each.startsWith(`${path}.`) || each.startsWith(`${path}[`)) return true;
  return false;
}
