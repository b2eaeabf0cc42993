/** The dashboard of `jobboard dev`, with a conductor that reloads. */

import { InvalidArgument } from '../../core/errors.ts'
import { daemonLog } from '../../core/log.ts'
import { localAccess } from '../../ui/internal.ts'
import type { CliContext } from '../context.ts'
import { openConductorsLogbooks, openNamedBoard } from '../opening.ts'
import { type ServedBoards, serveBoards } from '../ui/serve-boards.ts'
import { ReloadingConductor } from './reloading-conductor.ts'

const PORT = 7_411

export interface DevDashboardOptions {
  readonly board: string
  readonly persistence: string
  readonly flows: readonly string[]
  readonly context: CliContext
}

export interface DevDashboard extends AsyncDisposable {
  readonly url: string
}

/** Opens the board, serves its dashboard on this machine, and starts the conductor, if there are flows. */
export async function startDevDashboard({
  board,
  persistence,
  flows,
  context,
}: DevDashboardOptions): Promise<DevDashboard> {
  const opened: AsyncDisposable[] = []
  const close = async () => {
    for (const one of opened.reverse()) await one[Symbol.asyncDispose]()
  }
  try {
    const named = await openNamedBoard({ board }, context, { create: true })
    opened.push(named)
    const logbooks = await openConductorsLogbooks({ persistence }, context)
    opened.push({ [Symbol.asyncDispose]: () => logbooks.close() })
    const boards = [{ name: 'demo', uri: board, board: named.board, persistence: logbooks }]
    const serve = (port: number): Promise<ServedBoards> =>
      serveBoards(boards, {
        ...{ options: { board, persistence }, context, redact: [], port },
        // The board is for trials, and can be reached from this machine only.
        access: { authorize: localAccess({ who: 'local', level: 'admin', values: true }) },
        log: daemonLog({ level: 'warn' }),
      })
    const served = await serve(PORT).catch((error: unknown) => {
      if (!(error instanceof InvalidArgument)) throw error
      return serve(0)
    })
    opened.push(served)
    if (flows.length > 0) {
      const conductor = new ReloadingConductor({ flows, board, persistence, context })
      opened.push(conductor)
      await conductor.start()
    }
    return { url: served.url, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}
