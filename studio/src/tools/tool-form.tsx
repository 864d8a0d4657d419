import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { SchemaFields } from '../conversation/schema-fields.tsx';
import { useDraft } from '../lib/drafts.ts';
import { isRecord, type JsonRecord } from '../lib/json.ts';
import { type FormField, fieldsOf, readForm } from '../lib/schema-form.ts';
import { Icon } from '../ui/icon.tsx';
import { callTool, type ToolAnswer, type ToolName, type ToolOutcome } from './tool-calls.ts';
import { ToolResult } from './tool-result.tsx';

const jsonInput: readonly FormField[] = [
  { name: 'input', label: 'Input', required: true, kind: 'json' },
];

type Fault = { readonly field: string; readonly fault: string };

/** The form of a tool's input, and what the last call came to. It runs when a person presses Run, and never by itself. */
export function ToolForm({
  name,
  schema,
}: {
  readonly name: ToolName;
  readonly schema: JsonRecord | undefined;
}): ReactNode {
  const prefix = useId();
  const described = fieldsOf(schema);
  const fields = described ?? jsonInput;
  const [texts, setText] = useTexts(name, fields);
  const [fault, setFault] = useState<Fault>();
  const { outcome, isRunning, run, stop } = useCall(name);
  const input = (): JsonRecord | undefined => {
    const read = readForm(fields, texts);
    const value = 'fault' in read || described ? undefined : read.value.input;
    const wrong = 'fault' in read ? read : described || isRecord(value) ? undefined : notAnObject;
    setFault(wrong);
    if (wrong !== undefined || 'fault' in read) return undefined;
    return described ? read.value : (value as JsonRecord);
  };
  const start = (answer?: ToolAnswer): void => {
    const given = input();
    if (given !== undefined) void run({ input: given, ...(answer && { answer }) });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    start();
  };
  return (
    <div className="tool-form">
      <form className="answer-form" onSubmit={submit}>
        {fields.length === 0 && <p className="quiet">This tool takes no input.</p>}
        <SchemaFields
          fields={fields}
          texts={texts}
          fault={fault}
          prefix={prefix}
          onChange={setText}
        />
        <div className="buttons">
          <button type="submit" className="button primary" disabled={isRunning}>
            Run {name.tool}
          </button>
          {isRunning && (
            <button type="button" className="button" onClick={stop}>
              <Icon name="stop" size={14} /> Stop
            </button>
          )}
        </div>
      </form>
      <ToolResult tool={name.tool} outcome={outcome} isRunning={isRunning} onAnswer={start} />
    </div>
  );
}

const notAnObject: Fault = { field: 'input', fault: 'Input must be a JSON object.' };

/** The texts of the fields. They survive a reload. */
function useTexts(
  { agent, source, tool }: ToolName,
  fields: readonly FormField[],
): readonly [Readonly<Record<string, string>>, (name: string, text: string) => void] {
  const owner = agent === undefined ? `source.${source}` : `agent.${agent}`;
  const [draft, setDraft] = useDraft(`tool.${owner}.${tool}`);
  const texts = draft === '' ? initialTexts(fields) : JSON.parse(draft);
  return [texts, (name, text) => setDraft(JSON.stringify({ ...texts, [name]: text }))];
}

function initialTexts(fields: readonly FormField[]): Record<string, string> {
  const known = fields.flatMap(({ name, initial, kind, choices = [] }) => {
    if (initial === undefined) return [];
    if (kind === 'choice') return [[name, String(choices.indexOf(initial))] as const];
    return [[name, kind === 'json' ? JSON.stringify(initial) : String(initial)] as const];
  });
  return Object.fromEntries(known);
}

/** The call of this form: at most one at a time, stopped when the form is left. */
function useCall(name: ToolName): {
  readonly outcome: ToolOutcome | undefined;
  readonly isRunning: boolean;
  readonly run: (request: Parameters<typeof callTool>[1]) => Promise<void>;
  readonly stop: () => void;
} {
  const [outcome, setOutcome] = useState<ToolOutcome>();
  const [running, setRunning] = useState<AbortController>();
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  return {
    outcome,
    isRunning: running !== undefined,
    async run(request) {
      if (current.current) return;
      const stopping = new AbortController();
      current.current = stopping;
      setRunning(stopping);
      setOutcome(undefined);
      setOutcome(
        await callTool(name, request, stopping.signal).catch((error: unknown) =>
          notAnswered(error, stopping.signal),
        ),
      );
      current.current = undefined;
      setRunning(undefined);
    },
    stop: () => running?.abort(),
  };
}

function notAnswered(error: unknown, signal: AbortSignal): ToolOutcome {
  const message = signal.aborted
    ? 'Stopped. The tool was told to stop; whether it had an effect is unknown.'
    : `The server did not answer. ${error instanceof Error ? error.message : String(error)}`;
  return { failed: { status: 'CANCELLED', message, stack: '' } };
}
