/**
 * What happens on a board, each as a function of the database: one statement, and so one round trip and one transaction,
 * which nobody can leave open halfway. Within, every statement sees what was committed before *it*: the default isolation.
 *
 * Each takes many elements and answers for each. What one of them may not have is left out of the batch, and not raised:
 * an error would take the neighbours along.
 *
 * **Order of locks**, the same everywhere, so that nobody waits in a circle: the session's row, the table of boards (the gate),
 * resources by number, jobs by id. A session's row is held FOR KEY SHARE: it cannot be deleted meanwhile, and can be heartbeaten.
 *
 * **Names** are looked up in Postgres' own schema only: whoever may create functions in `public` could otherwise have theirs
 * called in place of Postgres' own, as the user of the board (CVE-2018-1058).
 */
import { requestFunctions } from './asking.ts'
import { claimFunctions } from './claiming.ts'
import { discardFunctions } from './discarding.ts'
import { helperFunctions } from './helpers.ts'
import { postFunctions } from './posting.ts'
import { reattachFunctions } from './reattaching.ts'
import { sectionFunctions } from './sections.ts'
import { sessionFunctions } from './sessions.ts'
import { settleFunctions } from './settling.ts'
import { trashFunctions } from './trash.ts'

/** All of them, as the newest step of the migrations makes them. */
export function boardFunctions(schema: string): string {
  return [
    helperFunctions,
    sessionFunctions,
    reattachFunctions,
    postFunctions,
    claimFunctions,
    settleFunctions,
    discardFunctions,
    trashFunctions,
    requestFunctions,
    sectionFunctions,
  ]
    .map((part) => withSearchPath(part(schema)).replaceAll('@', schema))
    .join('\n')
}

/** Is inlined, which a function with settings is not, and qualifies all names by itself. */
const INLINED_FUNCTION = 'milliseconds'

/** Makes functions that replace those of an older release, each with a search path of its own. */
function withSearchPath(text: string): string {
  return text.replace(/CREATE FUNCTION @\.(\w+)([\s\S]*?) AS \$function\$/g, (_, name: string, head: string) => {
    const path = name === INLINED_FUNCTION ? '' : ' SET search_path TO pg_catalog, pg_temp'
    return `CREATE OR REPLACE FUNCTION @.${name}${head}${path} AS $function$`
  })
}
