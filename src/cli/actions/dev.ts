/** The work of `jobboard dev`: runs a server until it is stopped, and removes everything that it made. */

import { rejectOnAbort } from '../../core/async/abort.ts'
import { JobboardError } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import { DevServer } from '../dev/dev-server.ts'
import { freePort } from '../dev/free-port.ts'
import { findServer, type ServerWord } from '../dev/servers.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { printJson, printLines } from '../output/output.ts'

export interface DevCommandOptions {
  readonly port?: number
  readonly with?: ServerWord
  readonly json?: boolean
}

/** Runs a ZooKeeper. @throws InvalidArgument if nothing can run it, naming what to install */
export async function dev(options: DevCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.listenForInterruption()
  const { signal } = interruption
  const recipe = await findServer(options.with, context)
  const port = await freePort(options.port)
  await using server = new DevServer({ recipe, port, env: context.env })
  try {
    await server.start(signal)
    const board = `zookeeper://127.0.0.1:${port}/demo`
    const persistence = `zookeeper://127.0.0.1:${port}/logbooks`
    if (options.json) await printJson(context, [{ board, persistence, port, with: recipe.word }])
    else await printLines(context, toLines({ board, persistence, from: recipe.from }))
    await rejectOnAbort(server.ended, signal)
    throw new JobboardError(`the server ended unexpectedly: ${await server.lastOutput()}`)
  } catch (error) {
    if (!signal.aborted) throw error
    return DONE
  }
}

function toLines({ board, persistence, from }: { board: string; persistence: string; from: string }): string[] {
  return [
    `# ZooKeeper runs, ${from}; Ctrl-C stops it and deletes its data. In another shell:`,
    `export JOBBOARD_BOARD=${board}`,
    `export JOBBOARD_PERSISTENCE=${persistence}`,
  ]
}
