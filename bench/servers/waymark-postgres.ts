import { postgresStore } from 'waymark/postgres';
import type { Listen } from './server.ts';
import { listenWith } from './waymark.ts';

export const listen: Listen = ({ postgres = '', ...pace }) =>
  listenWith(postgresStore({ connectionString: postgres }), pace);
