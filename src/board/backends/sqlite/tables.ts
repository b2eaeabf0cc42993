/** The tables of one board, by role. */
import { Batches } from './batches.ts'
import { type BoardPlace, Changes } from './changes.ts'
import { ClaimSteps } from './claims.ts'
import { Dependencies } from './dependencies.ts'
import { Entities } from './entities.ts'
import { History } from './history.ts'
import { Jobs } from './jobs.ts'
import { Keys } from './keys.ts'
import { Limits } from './limits.ts'
import { PostingSteps } from './posting.ts'
import { Records } from './records.ts'
import { Resources } from './resources.ts'
import { Sections } from './sections.ts'
import { Trash } from './trash.ts'

export type BoardTables = ReturnType<typeof boardTables>

/** Returns the roles of a board. */
export function boardTables(place: BoardPlace) {
  const changes = new Changes(place)
  const [keys, resources, limits] = [new Keys(place), new Resources(place), new Limits(place)]
  const [dependencies, batches] = [new Dependencies(place, changes), new Batches(place, changes)]
  const [history, records] = [new History(place), new Records(place, changes)]
  const shared = { place, changes, keys, dependencies, batches }
  const jobs = new Jobs({ ...shared, history })
  return {
    ...{ jobs, limits, dependencies, batches, history, records },
    posting: new PostingSteps({ ...shared, jobs, limits, records }),
    claims: new ClaimSteps({ place, changes, jobs, resources, limits }),
    trash: new Trash({ ...shared, jobs }),
    entities: new Entities(place),
    sections: new Sections(place),
  }
}
