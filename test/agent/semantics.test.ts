import { expect, test } from 'vitest';
import { checkSemantics } from '../../scripts/check-semantics.ts';

test('every rule is cited by a test, and everything that is cited is a rule', () => {
  const { uncited, unknown, doubled } = checkSemantics();
  expect({ uncited, unknown, doubled }).toEqual({ uncited: [], unknown: [], doubled: [] });
});
