/**
 * The numbered migration steps of the schema of boards. A released step never changes; changes are made in a new step. The
 * functions are kept once, in their present form, in one step after all steps that change tables. A change of a function moves
 * them into a new last step and leaves an empty step in their former place, so that every schema receives them.
 */
import type { Migrations } from '../../../postgres/index.ts'
import { boardFunctions } from './functions/index.ts'
import { tables } from './tables.ts'

export function boardMigrations(schema: string): Migrations {
  return { schema, part: 'board', steps: [tables(schema), columnAdditions(schema), boardFunctions(schema)] }
}

/** Returns the columns that a schema of an older release is missing. */
function columnAdditions(schema: string): string {
  return `
ALTER TABLE ${schema}.boards ADD COLUMN IF NOT EXISTS fence_base bigint NOT NULL DEFAULT 0;
ALTER TABLE ${schema}.sessions
  ADD COLUMN IF NOT EXISTS fences oid,
  ADD COLUMN IF NOT EXISTS lock integer,
  ADD COLUMN IF NOT EXISTS attachment integer NOT NULL DEFAULT 0;
UPDATE ${schema}.sessions SET lock = id WHERE lock IS NULL;`
}
