/**
 * The SQL engine and the interface of drivers, for authors of drivers for other SQL databases.
 *
 * @module
 */

export type { Encryption } from '../store/sql/content/cipher.ts';
export type { Dialect, Expressions, RowSums } from '../store/sql/database/dialect.ts';
export type { Driver, Hint, WriteOptions } from '../store/sql/database/driver.ts';
export type { Plan, Query, SqlValue, Statement } from '../store/sql/database/query.ts';
export type { SqlStoreOptions } from '../store/sql/sql-context.ts';
export { type SqlStore, sqlStore } from '../store/sql/sql-store.ts';
export { sqliteDialect, sqliteServerDialect, sqliteText } from '../store/sqlite/dialect.ts';
export { type UpgradeOptions, upgradeSqlite } from '../store/sqlite/migrate.ts';
