import { checkTitle } from '../../rules/size-limits.ts';
import type { Cipher } from '../content/cipher.ts';
import { type Home, sessionPlace } from '../content/places.ts';
import { type SqlValue, statement } from '../database/query.ts';

/** Gives a session a title unless it has one. */
export const nameUntitled = statement(
  'session_default_title',
  'UPDATE @sessions SET title = $2 WHERE row_id = $1 AND title IS NULL',
);

/** A title as it is stored. */
export function sealTitle(title: string, home: Home, cipher: Cipher): SqlValue {
  return cipher.encrypt(JSON.stringify(checkTitle(title)), sessionPlace('title', home));
}
