export type { BackupReport } from '../backup.ts';
export { fileStore } from './file-store.ts';
export { backupFiles, restoreFiles } from './maintenance/backup.ts';
export type { FileStoreOptions } from './options.ts';
