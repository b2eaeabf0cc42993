/** The stream of changes: Server-Sent Events, at most four messages a second. */
import { z } from 'zod'

/**
 * An event's data. A message names what has changed and carries no values: the page reads again what it shows. `topics` are `board`, `jobs`,
 * `trash`, `limits`, `flows`, `schedules`, `conductors`, `batches`, and the uuids of jobs that the request has named.
 */
export const change = z.object({ board: z.string(), topics: z.array(z.string()), at: z.iso.datetime() })
export type WireChange = z.infer<typeof change>
