/**
 * The operations of a board are functions of the database. Each call is one statement: one round trip and one transaction,
 * which no client can leave open. Within a function, each statement sees what was committed before *it*: the default isolation.
 *
 * Each function takes several elements and returns an answer for each. An element that is refused is omitted from the batch
 * instead of raising an error, which would roll back the other elements.
 *
 * **Order of locks**, the same everywhere to avoid deadlocks: the session's row, the table of boards (the gate), resources by
 * number, jobs by id. A session's row is locked FOR KEY SHARE: it cannot be deleted meanwhile, but heartbeats can update it.
 *
 * **Names** are resolved in Postgres' own schema only. Otherwise a role that may create functions in `public` could have its
 * functions called instead of Postgres' own, as the user of the board (CVE-2018-1058).
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

/** Returns all functions, as the newest step of the migrations creates them. */
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

/** The function that Postgres inlines, so it must have no settings; it qualifies all names itself. */
const INLINED_FUNCTION = 'milliseconds'

/** Changes the statements so that they replace functions of an older release and set the search path of each function. */
function withSearchPath(text: string): string {
  return text.replace(/CREATE FUNCTION @\.(\w+)([\s\S]*?) AS \$function\$/g, (_, name: string, head: string) => {
    const path = name === INLINED_FUNCTION ? '' : ' SET search_path TO pg_catalog, pg_temp'
    return `CREATE OR REPLACE FUNCTION @.${name}${head}${path} AS $function$`
  })
}
