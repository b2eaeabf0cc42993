/** Versions of Node beside the one that runs, for what has to work on each. */
import { join } from 'node:path'
import { ROOT } from './build.ts'
import { ensureInstalled } from './npm-folder.ts'

const FOLDER = join(ROOT, 'test/support/nodes')

export type NodeVersion = 'own' | '22' | '24'

/** The folder of the program. */
export async function nodeFolder(version: NodeVersion): Promise<string> {
  if (version === 'own') return join(process.execPath, '..')
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`Node ${version} can be had for linux-x64 only, this is ${process.platform}-${process.arch}`)
  await ensureInstalled(FOLDER, { because: `Node ${version} is needed beside ${process.version}` })
  return join(FOLDER, 'node_modules', `node-${version}`, 'bin')
}
