/**
 * The numbered steps that make a schema one for boards. What was released is never changed; the next step is. Functions are
 * kept once, as they are now, and belong to one step, behind all that changes tables: a change of theirs moves them into a new
 * last step, and leaves an empty one behind, so that every schema gets them.
 */
import type { Migrations } from '../../../postgres/index.ts'
import { boardFunctions } from './functions/index.ts'
import { tables } from './tables.ts'

export function boardMigrations(schema: string): Migrations {
  return { schema, part: 'board', steps: [tables(schema), columnAdditions(schema), boardFunctions(schema)] }
}

/** What a schema has that was made before its table had these columns. */
function columnAdditions(schema: string): string {
  return `
ALTER TABLE ${schema}.boards ADD COLUMN IF NOT EXISTS fence_base bigint NOT NULL DEFAULT 0;
ALTER TABLE ${schema}.sessions
  ADD COLUMN IF NOT EXISTS fences oid,
  ADD COLUMN IF NOT EXISTS lock integer,
  ADD COLUMN IF NOT EXISTS attachment integer NOT NULL DEFAULT 0;
UPDATE ${schema}.sessions SET lock = id WHERE lock IS NULL;`
}
