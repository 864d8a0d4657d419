export type { BackupReport } from '../backup.ts';
export { backupFiles, restoreFiles } from './backup.ts';
export { type FileStoreOptions, fileStore } from './file-store.ts';
