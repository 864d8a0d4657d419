export type { BackupReport } from '../backup.ts';
export { backupFiles, restoreFiles } from './backup.ts';
export { fileStore } from './file-store.ts';
export type { FileStoreOptions } from './options.ts';
