/**
 * The store in files, for development and one host.
 *
 * @module
 */

export type { BackupReport } from '../backup.ts';
export { backupFiles, restoreFiles } from './backup.ts';
export { type FileStoreOptions, fileStore } from './file-store.ts';
