import type { UseKit } from './store-contract.ts';

export function abortContract(_useKit: UseKit): void {}
