import { type FormEvent, type ReactNode, useId, useState } from 'react';
import type { Json, JsonRecord } from '../lib/json.ts';
import { type FormField, fieldsOf, readForm } from '../lib/schema-form.ts';
import { SchemaFields } from './schema-fields.tsx';

/** Without a schema the answer is a text. */
const anyAnswer: readonly FormField[] = [
  { name: 'answer', label: 'Answer', required: true, kind: 'long-text' },
];
const jsonAnswer: readonly FormField[] = [
  { name: 'answer', label: 'Answer', required: true, kind: 'json' },
];

/** A form for the answer that a tool would have given, made from the schema of its output. */
export function AnswerForm({
  schema,
  submit,
  isBusy,
  onAnswer,
}: {
  readonly schema: JsonRecord | undefined;
  /** The label of the button. */
  readonly submit: string;
  readonly isBusy: boolean;
  readonly onAnswer: (output: Json) => void;
}): ReactNode {
  const prefix = useId();
  const described = fieldsOf(schema);
  const fields = described ?? (schema ? jsonAnswer : anyAnswer);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() => initialTexts(fields));
  const [fault, setFault] = useState<{ readonly field: string; readonly fault: string }>();
  const answer = (event: FormEvent): void => {
    event.preventDefault();
    const read = readForm(fields, texts);
    setFault('fault' in read ? read : undefined);
    if ('fault' in read) return;
    onAnswer(described ? read.value : (read.value.answer ?? ''));
  };
  return (
    <form className="answer-form" onSubmit={answer}>
      <SchemaFields
        fields={fields}
        texts={texts}
        fault={fault}
        prefix={prefix}
        onChange={(name, text) => setTexts((before) => ({ ...before, [name]: text }))}
      />
      <button type="submit" className="button primary" disabled={isBusy}>
        {submit}
      </button>
    </form>
  );
}

function initialTexts(fields: readonly FormField[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const { name, initial, kind } of fields) {
    if (initial !== undefined)
      texts[name] = kind === 'json' ? JSON.stringify(initial) : String(initial);
  }
  return texts;
}
