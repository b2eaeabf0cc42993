/**
 * A socket that exists as long as its process, so that other processes of the same host know for certain when the process has ended.
 *
 * It is a listening Unix socket with an abstract name (Linux only). The kernel removes the socket when the process ends, in whatever way, and never while
 * the process is stopped, hangs, or has lost its connections. The socket is in no file system, so no file is left over, and no process can remove it. The name
 * is random, so no later process gets it; the number of a process can be used again.
 *
 * Such names belong to a network namespace: the host itself, a container, a pod. What another namespace contains cannot be seen. So a name is
 * only looked for by processes with the same {@link ProcessSocket.host}.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readFile, readlink } from 'node:fs/promises'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { hostname } from 'node:os'

/** The size of the field for the name in the address. Releases of Node differ in how they encode shorter names, and would not find each other. */
const NAME_BYTES = 108
/** The number of other processes to which a process keeps connections: one of them may be stopped, and notice nothing. */
const LINKS = 2
/** Limit of connections that other processes keep to a socket. */
const MAX_LINKS = 256

export class ProcessSocket {
  /** Equal for two processes only if they run on the same kernel since the same start, in the same network namespace. */
  readonly host: string
  readonly name: string = randomUUID()
  readonly #onLinkBroken: () => void
  readonly #accepted = new Set<Socket>()
  /** The peers to which a connection failed, or broke: they are not connected to again. */
  readonly #unlinkable = new Set<string>()
  #server: Server | undefined
  readonly #links = new Map<string, Socket>()

  private constructor(host: string, onLinkBroken: () => void) {
    this.host = host
    this.#onLinkBroken = onLinkBroken
  }

  /**
   * Opens a socket.
   *
   * @param onLinkBroken called when a connection to or from another process breaks: the other process may have ended
   * @returns undefined where processes cannot know of each other in this way
   */
  static async open(onLinkBroken: () => void): Promise<ProcessSocket | undefined> {
    if (process.platform !== 'linux') return undefined
    try {
      const socket = new ProcessSocket(await readHost(), onLinkBroken)
      await socket.#listen()
      return socket
    } catch {
      return undefined
    }
  }

  /**
   * Returns the names whose processes have certainly ended. Two sources must agree: the kernel's list of sockets, which must contain the socket of this
   * process, lacks the name; and a connection to it is refused. All other errors prove nothing.
   */
  async ended(names: readonly string[]): Promise<ReadonlySet<string>> {
    const listed = await readFile('/proc/net/unix', 'latin1').catch(() => '')
    const isListed = (name: string) => listed.includes(`@${toSocketName(name)}`)
    const missing = isListed(this.name) ? names.filter((name) => !isListed(name)) : []
    const refused = await Promise.all(missing.map(async (name) => ((await isRefused(name)) ? [name] : [])))
    return new Set(refused.flat())
  }

  /** Keeps connections to the first names whose connection has not failed yet, at most {@link LINKS}. Both processes notice when one breaks. */
  linkTo(names: readonly string[]): void {
    for (const each of this.#unlinkable) if (!names.includes(each)) this.#unlinkable.delete(each)
    const wanted = names.filter((each) => !this.#unlinkable.has(each)).slice(0, LINKS)
    for (const name of this.#links.keys()) if (!wanted.includes(name)) this.#unlink(name)
    for (const name of wanted) if (!this.#links.has(name)) this.#link(name)
  }

  close(): void {
    for (const name of this.#links.keys()) this.#unlink(name)
    for (const socket of this.#accepted) socket.removeAllListeners('close').destroy()
    this.#accepted.clear()
    this.#server?.close()
  }

  #link(name: string): void {
    const socket = createConnection({ path: toPath(name) })
    socket.unref()
    // The peer counts a connection as a link when something arrives.
    socket.on('connect', () => socket.write('\n'))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#unlinkable.add(name)
      this.#links.delete(name)
      this.#onLinkBroken()
    })
    this.#links.set(name, socket)
  }

  #unlink(name: string): void {
    this.#links.get(name)?.removeAllListeners('close').destroy()
    this.#links.delete(name)
  }

  #listen(): Promise<void> {
    const server = createServer((socket) => this.#accept(socket))
    server.maxConnections = MAX_LINKS
    server.unref()
    this.#server = server
    return new Promise((resolve, reject) => {
      server.on('error', reject)
      // Otherwise the first process of a cluster would listen for its workers.
      server.listen({ path: toPath(this.name), exclusive: true }, resolve)
    })
  }

  #accept(socket: Socket): void {
    socket.unref()
    this.#accepted.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#accepted.delete(socket))
    socket.once('data', () => socket.on('close', () => this.#onLinkBroken()))
  }
}

/**
 * Returns a text that is equal for two processes only if each can see the other's sockets. The start of the kernel and the namespace are enough, with one
 * exception: copies of a running virtual machine have both in common. The host name may distinguish them, and the address that the server sees (`host_of`
 * in functions/sessions.sql).
 *
 * @throws Error where the kernel does not tell
 */
async function readHost(): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
  const namespace = await readlink('/proc/self/ns/net')
  return createHash('sha256')
    .update(JSON.stringify([boot, namespace, hostname()]))
    .digest('base64url')
}

function toSocketName(name: string): string {
  return `jobboard-${name}`
}

/** Returns the path of an abstract name for `node:net`: it begins with a zero byte. */
function toPath(name: string): string {
  return `\0${toSocketName(name)}`.padEnd(NAME_BYTES, '-')
}

/** Returns whether no socket with this name listens. */
function isRefused(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path: toPath(name) })
    socket.on('error', (error) => resolve('code' in error && error.code === 'ECONNREFUSED'))
    socket.on('connect', () => {
      resolve(false)
      socket.destroy()
    })
  })
}
