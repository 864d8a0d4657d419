import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { model } from './model.ts';

// #region task
const app = waymark({ model, store: sqliteStore('waymark.db') });

// #endregion

export { app };
