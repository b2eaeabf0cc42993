/** Exports of the dashboard for the command line, not for users. */
export { isLoopback } from './access/hosts.ts'
export { serveDashboard } from './server.ts'
