/**
 * What happens on a board, each as a function of the database: one statement, and so one round trip and one transaction,
 * which nobody can leave open halfway. Within, every statement sees what was committed before *it*: the default isolation.
 *
 * Each takes many elements and answers for each. What one of them may not have is left out of the batch, and not raised:
 * an error would take the neighbours along.
 *
 * **Order of locks**, the same everywhere, so that nobody waits in a circle: the session's row, the gate, resources by
 * number, jobs by id. A session's row is held FOR KEY SHARE: it cannot be deleted meanwhile, and can be heartbeaten.
 */
import { asking } from './asking.ts'
import { claiming } from './claiming.ts'
import { discarding } from './discarding.ts'
import { helpers } from './helpers.ts'
import { posting } from './posting.ts'
import { sectionFunctions } from './sections.ts'
import { sessions } from './sessions.ts'
import { settling } from './settling.ts'
import { trash } from './trash.ts'

export function functions(schema: string): string {
  return [helpers, sessions, posting, claiming, settling, discarding, trash, asking, sectionFunctions]
    .map((part) => part(schema).replaceAll('@', schema))
    .join('\n')
}
