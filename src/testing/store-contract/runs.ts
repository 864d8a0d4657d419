import { badInputContract } from './bad-input.ts';
import { claimContract } from './claims.ts';
import { handOverContract } from './hand-over.ts';
import { idTypeContract } from './id-types.ts';
import type { UseKit } from './kit.ts';
import { recoveryContract } from './recovery.ts';
import { requestContract } from './requests.ts';
import { steeringContract } from './steering.ts';
import { turnContract } from './turns.ts';
import { unlistedContract } from './unlisted.ts';

/** Claims, turns, recovery. */
export function runContract(useKit: UseKit): void {
  turnContract(useKit);
  claimContract(useKit);
  unlistedContract(useKit);
  recoveryContract(useKit);
  handOverContract(useKit);
  requestContract(useKit);
  steeringContract(useKit);
  badInputContract(useKit);
  idTypeContract(useKit);
}
