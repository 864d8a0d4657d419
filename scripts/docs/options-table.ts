import { readFileSync } from 'node:fs';

/** One property of an interface, as its source says it. */
export interface Property {
  readonly name: string;
  readonly optional: boolean;
  readonly type: string;
  readonly about: string;
  readonly default?: string;
}

/** The properties of an interface or object type, read from its source: there is no compiler to ask. */
export function propertiesOf(path: string, name: string): Property[] {
  const text = readFileSync(path, 'utf8');
  const start = text.search(new RegExp(`^(export )?(interface|type) ${name}\\b`, 'm'));
  if (start < 0) throw new Error(`${path} has no interface "${name}"`);
  const body = text.slice(start, endOf(text, start));
  const member = /((?:^ *\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?)^( +)readonly (\w+)(\??):\s/gm;
  const properties: Property[] = [];
  let depth: number | undefined;
  for (const match of body.matchAll(member)) {
    const [whole, comment = '', indent = '', property = '', mark = ''] = match;
    depth ??= indent.length;
    // Deeper ones belong to the type of the one before; of a union of sources all are named.
    if (indent.length > depth && !/^export type/.test(body)) continue;
    if (properties.some((each) => each.name === property)) continue;
    const type = typeOf(body.slice(match.index + whole.length));
    if (type === 'never') continue;
    properties.push({ name: property, optional: mark === '?', type, ...docOf(comment) });
  }
  return properties;
}

/** The members of an interface or a schema with their documentation: methods, and fields of any kind. */
export function membersOf(path: string, name: string): Pick<Property, 'name' | 'about'>[] {
  const text = readFileSync(path, 'utf8');
  const start = text.search(new RegExp(`^(export )?(interface|const) ${name}\\b`, 'm'));
  if (start < 0) throw new Error(`${path} has no "${name}"`);
  const body = text.slice(start, text.indexOf('\n}', start));
  const member = /(^ {2}\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)^ {2}(\w+)[(:<]/gm;
  return [...body.matchAll(member)].map(([, comment = '', member = '']) => ({
    name: member,
    about: docOf(comment).about,
  }));
}

function endOf(text: string, start: number): number {
  const end = text.slice(start).search(/^(\}|\s+\};)$|^\};$/m);
  const close = text.slice(start).search(/^\S*\};?$/m);
  return start + Math.max(end, close);
}

// Up to the semicolon that is in no bracket.
function typeOf(text: string): string {
  let depth = 0;
  for (const [at, letter] of [...text].entries()) {
    if ('({['.includes(letter)) depth++;
    if (')}]'.includes(letter)) depth--;
    if (letter === ';' && depth === 0) return [...text].slice(0, at).join('').replace(/\s+/g, ' ');
  }
  return '';
}

function docOf(comment: string): { readonly about: string; readonly default?: string } {
  const text = comment
    .replace(/\/\*\*|\*\//g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .join(' ')
    .replace(/\{@link (\w+)(?:\.\w+)?\}/g, '`$1`')
    .trim();
  const [about = '', preset] = text.split('@default');
  return { about: about.trim(), ...(preset !== undefined && { default: preset.trim() }) };
}

/** Default descriptions by name, for options without a doc comment. */
const plain: Readonly<Record<string, string>> = {
  name: 'The name.',
  description: 'A description for users, and for models that can call it.',
  limits: 'The limits; see below.',
  clock: 'The clock.',
  newId: 'Generates ids.',
  model: 'The model that answers.',
  config: 'Settings of the model, such as `temperature`.',
  tools: 'Tools that the model can call, by name or as objects.',
  output: 'The schema and format of the answer.',
  use: 'Middleware around each model and tool call.',
  fetch: 'The function that sends requests.',
  WebSocket: 'The class that opens WebSockets.',
  keepLabelled: 'Keeps labelled snapshots.',
  metadata: 'Additional plain JSON.',
  input: 'The schema of the input.',
  credentials: 'Whether cookies are allowed.',
  snapshotId: 'Continue from this snapshot.',
  sessionId: 'Continue this session.',
  state: 'Continue from this client-held state.',
  agent: 'The agent.',
  pool: 'Your own pool; the store does not close it.',
  connectionString: 'The connection string of the database, for a new pool.',
  format: 'The format of the answer: `text`, `json`, `array`, `enum` or `jsonl`.',
  limit: 'Maximum number of items per page.',
  cursor: 'The `next` value of the previous page.',
  signal: 'Stops the call.',
  temperature: 'Sampling temperature.',
  maxOutputTokens: 'Maximum number of tokens in the answer.',
  topP: 'Nucleus sampling: cumulative probability of the tokens to sample from.',
  topK: 'Samples only from this number of most likely tokens.',
  presencePenalty: 'Penalty for tokens that occurred before.',
  frequencyPenalty: 'Penalty for tokens by how often they occurred.',
  stopSequences: 'Sequences at which the model stops.',
  seed: 'Seed for reproducible output.',
  usage: 'Tokens.',
  reasoning: 'The reasoning of the model before its answer.',
  toolCalls: 'Tool calls of the model: `{ name, input, ref? }`.',
  finishReason: 'How the turn ended.',
  patterns: 'Pairs of a regular expression and a reply, or a function of the match.',
  priority: 'Higher priorities start first.',
};

/** The same for fields that are returned. */
const given: Readonly<Record<string, string>> = {
  agent: 'The agent.',
  sessionId: 'The session.',
  snapshotId: 'The snapshot.',
  operation: 'The operation, such as `runTurn` or `deleteSession`.',
  request: 'The HTTP request.',
  phase: '`loading`, `ready`, `sending`, `running` or `stopping`.',
  title: 'The title of the session.',
  usage: 'Tokens of the last turn.',
};

/** Returned fields as a Markdown table. */
export function fieldsTable(properties: readonly Property[]): string {
  const rows = properties.map(
    ({ name, type, about }) =>
      `| \`${name}\`${type.length > 48 ? '' : ` \`${type}\``} | ${about || (given[name] ?? '')} |`,
  );
  return ['| field | what it is |', '| --- | --- |', ...rows.map(escapePipes)].join('\n');
}

/** Members as a Markdown table. */
export function membersTable(members: readonly Pick<Property, 'name' | 'about'>[]): string {
  const rows = members.map(({ name, about }) => escapePipes(`| \`${name}\` | ${about} |`));
  return ['| name | what it is |', '| --- | --- |', ...rows].join('\n');
}

/** Properties as a Markdown table. */
export function optionsTable(properties: readonly Property[]): string {
  const rows = properties.map(({ name, optional, type, about, default: preset }) => {
    const shown = type.length > 48 ? '' : ` \`${type.replace(/^\| /, '')}\``;
    // One with a default can be left out, whatever the type inside says.
    const must = optional || preset !== undefined ? '' : ' (required)';
    return `| \`${name}\`${shown}${must} | ${about || (plain[name] ?? '')} | ${preset ?? ''} |`;
  });
  return [
    '| option | what it is | default |',
    '| --- | --- | --- |',
    ...rows.map(escapePipes),
  ].join('\n');
}

// A bar inside of code would end its cell.
function escapePipes(row: string): string {
  return row.replace(/`[^`]*`/g, (code) => code.replace(/\\?\|/g, '\\|'));
}
