import type { UseKit } from './store-contract.ts';

export function maintenanceContract(_useKit: UseKit): void {}
