import type { UseKit } from './store-contract.ts';

export function eventContract(_useKit: UseKit): void {}
