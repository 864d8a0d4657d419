import type { ReactNode } from 'react';
import type { FormField } from '../lib/schema-form.ts';

/** The fields of a form that a schema describes; their values are texts until the form is read. */
export function SchemaFields({
  fields,
  texts,
  fault,
  onChange,
  prefix,
}: {
  readonly fields: readonly FormField[];
  readonly texts: Readonly<Record<string, string>>;
  readonly fault: { readonly field: string; readonly fault: string } | undefined;
  readonly onChange: (name: string, text: string) => void;
  /** Tells the ids of two forms apart. */
  readonly prefix: string;
}): ReactNode {
  return fields.map((field) => {
    const id = `${prefix}-${field.name}`;
    const isWrong = fault?.field === field.name;
    const described = field.description !== undefined || isWrong;
    return (
      <div className="field" key={field.name}>
        <label htmlFor={id}>
          {field.label}
          {!field.required && <span className="quiet"> optional</span>}
        </label>
        <FieldInput
          id={id}
          field={field}
          text={texts[field.name] ?? ''}
          onChange={(text) => onChange(field.name, text)}
          {...(described && { describedBy: `${id}-about` })}
          isWrong={isWrong}
        />
        {described && (
          <p id={`${id}-about`} className={isWrong ? 'fault-text' : 'quiet'}>
            {isWrong ? fault.fault : field.description}
          </p>
        )}
      </div>
    );
  });
}

function FieldInput({
  id,
  field,
  text,
  onChange,
  describedBy,
  isWrong,
}: {
  readonly id: string;
  readonly field: FormField;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly describedBy?: string;
  readonly isWrong: boolean;
}): ReactNode {
  const common = {
    id,
    'aria-describedby': describedBy,
    'aria-invalid': isWrong || undefined,
  };
  switch (field.kind) {
    case 'flag':
      return (
        <input
          {...common}
          type="checkbox"
          checked={text === 'true'}
          onChange={(event) => onChange(String(event.target.checked))}
        />
      );
    case 'choice':
      return (
        <select {...common} value={text} onChange={(event) => onChange(event.target.value)}>
          <option value="">Choose…</option>
          {field.choices?.map((choice, at) => (
            <option key={String(choice)} value={at}>
              {String(choice)}
            </option>
          ))}
        </select>
      );
    case 'long-text':
    case 'json':
      return (
        <textarea
          {...common}
          className={field.kind === 'json' ? 'mono' : undefined}
          dir="auto"
          rows={3}
          value={text}
          placeholder={field.kind === 'json' ? 'JSON' : undefined}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    case 'number':
    case 'integer':
    case 'text':
      return (
        <input
          {...common}
          type="text"
          dir="auto"
          inputMode={field.kind === 'text' ? undefined : 'decimal'}
          value={text}
          onChange={(event) => onChange(event.target.value)}
        />
      );
  }
}
