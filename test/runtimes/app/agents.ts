import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';

export const app = waymark({
  store: sqliteStore(process.env.APP_STORE ?? 'agents.db'),
  model: scriptedModel({ patterns: [], otherwise: 'hello there' }),
});
app.defineAgent({ name: 'chat' });
