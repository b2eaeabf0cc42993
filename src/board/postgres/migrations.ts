/**
 * The numbered steps that make a schema one for boards. What was released is never changed; the next step is. Functions are
 * kept once, as they are now, and belong to one step, behind all that changes tables: a change of theirs moves them into a new
 * last step, and leaves an empty one behind, so that every schema gets them.
 */
import type { Migrations } from '../../postgres/index.ts'
import { functions } from './functions/index.ts'
import { tables } from './tables.ts'

export function boardMigrations(schema: string): Migrations {
  return { schema, part: 'board', steps: [tables(schema), functions(schema)] }
}
