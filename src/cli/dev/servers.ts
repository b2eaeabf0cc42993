/** The ways to run a ZooKeeper on this machine. */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { InvalidArgument } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import type { SERVER_CHOICES } from '../input/choices.ts'

export type ServerWord = (typeof SERVER_CHOICES)[number]

export interface ServerRecipe {
  readonly word: ServerWord
  /** The origin for people: `from Debian's package`. */
  readonly from: string
  /** Returns the command line. @param place.folder the server's own folder, with `zoo.cfg` in it */
  readonly command: (place: ServerPlacement) => readonly string[]
  /** Returns a command that ends what outlives the server's process. */
  readonly cleanUpCommand?: (place: ServerPlacement) => readonly string[]
}

export interface ServerPlacement {
  readonly folder: string
  readonly port: number
}

const ZOOKEEPER_JAR = '/usr/share/java/zookeeper.jar'
const ZOOKEEPER_IMAGE = 'zookeeper:3.9'

const FROM_PACKAGE: ServerRecipe = {
  word: 'package',
  from: "from Debian's package",
  command: ({ folder }) => [
    'java',
    ...['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
    ...['-cp', [folder, ZOOKEEPER_JAR].join(delimiter)],
    ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(folder, 'zoo.cfg')],
  ],
}

const IN_DOCKER: ServerRecipe = {
  word: 'docker',
  from: `in a container of ${ZOOKEEPER_IMAGE}`,
  command: ({ folder, port }) => [
    ...['docker', 'run', '--rm', '--name', containerName(port), '--publish', `127.0.0.1:${port}:${port}`],
    ...['--volume', `${join(folder, 'zoo.cfg')}:/conf/zoo.cfg:ro`, ZOOKEEPER_IMAGE],
  ],
  cleanUpCommand: ({ port }) => ['docker', 'rm', '--force', containerName(port)],
}

function containerName(port: number): string {
  return `jobboard-dev-${port}`
}

/**
 * Returns the recipe that is asked for, by default the first that is installed.
 *
 * @throws InvalidArgument naming what to install
 */
export async function findServer(
  asked: ServerWord | undefined,
  { env }: Pick<CliContext, 'env'>,
): Promise<ServerRecipe> {
  const path = env['PATH'] ?? ''
  if (asked !== 'docker' && (await isThere(ZOOKEEPER_JAR)) && (await findOnPath('java', path))) return FROM_PACKAGE
  if (asked !== 'package' && (await findOnPath('docker', path)) && (await isDockerReady(env))) return IN_DOCKER
  const apt = 'apt-get install --no-install-recommends zookeeper default-jre-headless (Debian, Ubuntu)'
  const docker = 'start Docker'
  const how = asked === 'package' ? apt : asked === 'docker' ? docker : `${apt}, or ${docker}`
  throw new InvalidArgument(`nothing on this machine can run ZooKeeper: ${how}`)
}

async function findOnPath(program: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) if (folder !== '' && (await isThere(join(folder, program)))) return true
  return false
}

function isThere(file: string): Promise<boolean> {
  return access(file, constants.R_OK).then(
    () => true,
    () => false,
  )
}

/**
 * The time limit for Docker's answer. A client without an engine is common, and hangs if it waits for its socket.
 */
const DOCKER_TIMEOUT_MS = 5_000

function isDockerReady(env: CliContext['env']): Promise<boolean> {
  const asking = promisify(execFile)('docker', ['info'], { timeout: DOCKER_TIMEOUT_MS, env: { ...env } })
  return asking.then(
    () => true,
    () => false,
  )
}
