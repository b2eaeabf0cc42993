/** What a ZooKeeper can be run with on this machine. */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { InvalidArgument } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import type { SERVER_WORDS } from '../words.ts'

export type ServerWord = (typeof SERVER_WORDS)[number]

export interface Recipe {
  readonly word: ServerWord
  /** For people: `from Debian's package`. */
  readonly from: string
  /** @param place.folder of its own, with `zoo.cfg` in it. */
  readonly command: (place: Place) => readonly string[]
  /** Ends what outlives its process. */
  readonly farewell?: (place: Place) => readonly string[]
}

export interface Place {
  readonly folder: string
  readonly port: number
}

const JAR = '/usr/share/java/zookeeper.jar'
const IMAGE = 'zookeeper:3.9'

const FROM_PACKAGE: Recipe = {
  word: 'package',
  from: "from Debian's package",
  command: ({ folder }) => [
    'java',
    ...['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
    ...['-cp', [folder, JAR].join(delimiter)],
    ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(folder, 'zoo.cfg')],
  ],
}

const IN_DOCKER: Recipe = {
  word: 'docker',
  from: `in a container of ${IMAGE}`,
  command: ({ folder, port }) => [
    ...['docker', 'run', '--rm', '--name', nameOf(port), '--publish', `127.0.0.1:${port}:${port}`],
    ...['--volume', `${join(folder, 'zoo.cfg')}:/conf/zoo.cfg:ro`, IMAGE],
  ],
  farewell: ({ port }) => ['docker', 'rm', '--force', nameOf(port)],
}

function nameOf(port: number): string {
  return `jobboard-dev-${port}`
}

/**
 * The first that is there; the one that is asked for, if any is.
 *
 * @throws InvalidArgument saying what to install
 */
export async function serverHere(asked: ServerWord | undefined, { env }: Pick<CliContext, 'env'>): Promise<Recipe> {
  const path = env['PATH'] ?? ''
  if (asked !== 'docker' && (await isThere(JAR)) && (await onPath('java', path))) return FROM_PACKAGE
  if (asked !== 'package' && (await onPath('docker', path)) && (await engineAnswers(env))) return IN_DOCKER
  const apt = 'apt-get install --no-install-recommends zookeeper default-jre-headless (Debian, Ubuntu)'
  const docker = 'start Docker'
  const how = asked === 'package' ? apt : asked === 'docker' ? docker : `${apt}, or ${docker}`
  throw new InvalidArgument(`there is nothing here to run ZooKeeper with: ${how}`)
}

async function onPath(program: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) if (folder !== '' && (await isThere(join(folder, program)))) return true
  return false
}

function isThere(file: string): Promise<boolean> {
  return access(file, constants.R_OK).then(
    () => true,
    () => false,
  )
}

/** In milliseconds. A client without an engine is common, and one that waits for its socket hangs. */
const PATIENCE = 5_000

function engineAnswers(env: CliContext['env']): Promise<boolean> {
  const asking = promisify(execFile)('docker', ['info'], { timeout: PATIENCE, env: { ...env } })
  return asking.then(
    () => true,
    () => false,
  )
}
