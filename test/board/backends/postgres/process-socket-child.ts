/** Opens a socket of its process, prints its host and its name, and keeps it until the process is killed. */
import { ProcessSocket } from '../../../../src/board/backends/postgres/connection/process-socket.ts'

const socket = await ProcessSocket.open(() => undefined)
process.stdout.write(`${socket?.host} ${socket?.name}\n`)
setInterval(() => undefined, 60_000)
