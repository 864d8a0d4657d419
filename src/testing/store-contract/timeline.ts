import type { UseKit } from './store-contract.ts';

export function timelineContract(_useKit: UseKit): void {}
