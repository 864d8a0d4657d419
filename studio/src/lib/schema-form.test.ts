import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonRecord } from './json.ts';
import { fieldsOf, readForm } from './schema-form.ts';

const schema: JsonRecord = {
  type: 'object',
  properties: {
    colour: { enum: ['red', 'green'] },
    amountPaid: { type: 'integer', description: 'In euros.' },
    share: { type: ['number', 'null'], default: 0.5 },
    sure: { type: 'boolean' },
    note: { type: 'string', title: 'A note' },
    story: { type: 'string', maxLength: 2_000 },
    rest: { type: 'array', items: {} },
  },
  required: ['colour', 'amountPaid', 'note'],
};

const fields = fieldsOf(schema) ?? [];

test('each property is a field of its kind', () => {
  expect(fields.map(({ name, kind, label, required }) => [name, kind, label, required])).toEqual([
    ['colour', 'choice', 'Colour', true],
    ['amountPaid', 'integer', 'Amount paid', true],
    ['share', 'number', 'Share', false],
    ['sure', 'flag', 'Sure', false],
    ['note', 'text', 'A note', true],
    ['story', 'long-text', 'Story', false],
    ['rest', 'json', 'Rest', false],
  ]);
  expect(fields[1]?.description).toBe('In euros.');
  expect(fields[2]?.initial).toBe(0.5);
});

test('what is no object has no fields', () => {
  expect(fieldsOf(undefined)).toBeUndefined();
  expect(fieldsOf({ type: 'string' })).toBeUndefined();
});

test('texts become what the schema wants', () => {
  const texts = { colour: '1', amountPaid: ' 12 ', sure: 'true', rest: '[1, "b"]' };
  expect(readForm(fields, texts)).toEqual({
    value: { colour: 'green', amountPaid: 12, sure: true, note: '', rest: [1, 'b'] },
  });
});

test.each([
  [{ amountPaid: '1' }, 'colour', 'Colour is required.'],
  [{ colour: '0', amountPaid: '' }, 'amountPaid', 'Amount paid is required.'],
  [{ colour: '0', amountPaid: '1.5' }, 'amountPaid', 'Amount paid must be a whole number.'],
  [{ colour: '0', amountPaid: 'much' }, 'amountPaid', 'Amount paid must be a whole number.'],
  [{ colour: '0', amountPaid: '1', share: 'half' }, 'share', 'Share must be a number.'],
  [{ colour: '0', amountPaid: '1', rest: '[1,' }, 'rest', 'Rest must be JSON'],
])('a form that is filled in wrongly says where: %j', (texts, field, fault) => {
  expect(readForm(fields, texts)).toMatchObject({ field, fault: expect.stringContaining(fault) });
});

test('whatever is written, a form is read or says what is wrong', () => {
  const names = fields.map(({ name }) => name);
  const written = fc.dictionary(fc.constantFrom(...names), fc.string());
  fc.assert(
    fc.property(written, (texts) => {
      const read = readForm(fields, texts);
      if ('fault' in read) expect(names).toContain(read.field);
      else {
        expect(['red', 'green', null]).toContain(read.value.colour);
        expect(Number.isInteger(read.value.amountPaid)).toBe(true);
      }
    }),
  );
});
