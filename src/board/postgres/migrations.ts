/** The numbered steps that make a schema one for boards. What was released is never changed; the next step is. */
import type { Migrations } from '../../postgres/index.ts'
import { functions } from './functions/index.ts'
import { reattaching } from './functions/reattaching.ts'
import { tables } from './tables.ts'

export function boardMigrations(schema: string): Migrations {
  return { schema, part: 'board', steps: [`${tables(schema)}\n${functions(schema)}`, reattaching(schema)] }
}
