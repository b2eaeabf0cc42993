/**
 * Checks the owner of the schema. Any role that may create schemas in the database can create jobboard's schema first, with its
 * own tables, triggers and functions, and keeps the right to change them: these run with the rights of this client.
 */
import type { Logger } from '../core/log.ts'
import type { SqlDriver } from './connection.ts'

/**
 * The owner, where it is not this client's role or a role that it belongs to, nor a superuser, nor the owner of the database, who
 * are trusted anyway. A superuser counts as a member of every role, and so its memberships say nothing.
 */
const QUESTION = `
  SELECT o.rolname AS owner
  FROM pg_catalog.pg_namespace n
    JOIN pg_catalog.pg_roles o ON o.oid OPERATOR(pg_catalog.=) n.nspowner
    JOIN pg_catalog.pg_roles me ON me.rolname OPERATOR(pg_catalog.=) current_user
    JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
  WHERE n.nspname OPERATOR(pg_catalog.=) $1
    AND NOT o.rolsuper
    AND o.oid OPERATOR(pg_catalog.<>) me.oid
    AND o.oid OPERATOR(pg_catalog.<>) d.datdba
    AND o.rolname OPERATOR(pg_catalog.<>) 'pg_database_owner'
    AND (me.rolsuper OR NOT pg_catalog.pg_has_role(me.oid, o.oid, 'MEMBER'))`

/** Returns the foreign role that owns the schema; undefined if the owner is trusted. */
export async function foreignOwner(driver: SqlDriver, schema: string): Promise<string | undefined> {
  const { rows } = await driver.query(QUESTION, [schema])
  const owner = rows[0]?.['owner']
  return owner === undefined ? undefined : String(owner)
}

/** Returns what is wrong with a schema of a foreign owner, and what to do about it. */
export function foreignOwnerAdvice(
  owner: string,
  schema: string,
): { readonly problem: string; readonly advice: string } {
  return {
    problem: `schema ${schema} is owned by role ${owner}, who may change its tables and functions, and so what is done with them`,
    advice: `if you did not make it so, use another schema; else make it yours: ALTER SCHEMA ${schema} OWNER TO CURRENT_USER`,
  }
}

/** Warns once, on opening, of a schema with a foreign owner. */
export async function warnOfForeignOwner(
  driver: SqlDriver,
  { schema, log }: { readonly schema: string; readonly log: Logger | undefined },
): Promise<void> {
  if (log === undefined) return
  const owner = await foreignOwner(driver, schema)
  if (owner === undefined) return
  const { problem, advice } = foreignOwnerAdvice(owner, schema)
  log.warn({ schema, owner }, `${problem}; ${advice}`)
}
