import { join } from 'node:path';
import { sqliteStore } from 'waymark/sqlite';
import type { Listen } from './server.ts';
import { listenWith } from './waymark.ts';

export const listen: Listen = ({ directory, ...pace }) =>
  listenWith(sqliteStore(join(directory, 'http.db')), pace);
