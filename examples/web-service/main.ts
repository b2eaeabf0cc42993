/** The service, a conductor, and a client that asks for a picture and comes back for it. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { input, linear, openBoard, openPersistence, startConductor, task } from 'jobboard'
import { webService } from './service.ts'

const load = task('load', {
  requires: ['url'],
  provides: 'page',
  execute: ({ url }: { url: string }) => `<page ${url}>`,
})
const draw = task('draw', {
  requires: ['page'],
  execute: ({ page }: { page: string }) => `thumbnail-${page.length}.png`,
})
const thumbnail = linear('thumbnail', input<{ url: string }>(), load, draw)

/** A file that all processes of one machine can share, and the one of `jobboard dev`. */
const FILE = 'sqlite:./.jobboard/jobs.db'
await using board = await openBoard(process.env['JOBBOARD_BOARD'] || FILE)
await using persistence = await openPersistence(process.env['JOBBOARD_PERSISTENCE'] || FILE)
const server = webService({ board, persistence }).listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const ask = async (path: string, init?: RequestInit) => {
  const response = await fetch(origin + path, init)
  return { status: response.status, body: (await response.json()) as Record<string, unknown>, response }
}
const post = (body: unknown) => ask('/jobs', { method: 'POST', body: JSON.stringify(body) })

const posted = await post({ url: 'https://example.com' })
const place = posted.response.headers.get('location') ?? ''
console.log(posted.status, place === `/jobs/${posted.body['id']}`)
console.log((await ask(place)).body)
console.log((await post({ url: 'https://example.com' })).body['id'] === posted.body['id'])

{
  await using conductor = await startConductor({ board, persistence, flows: [thumbnail], burst: true })
  await conductor.stopped
}
console.log((await ask(place)).body)
console.log((await ask('/jobs/nobody-knows')).body, (await post({})).status)

server.close()
server.closeAllConnections()
await once(server, 'close')
