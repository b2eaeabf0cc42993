/** The browser in which pages are tested: Chromium of Debian's package. */
import { type Browser, chromium } from 'playwright-core'
import { exists, type Provision, provide } from './install.ts'

const PROGRAM = '/usr/bin/chromium'

const CHROMIUM: Provision = {
  name: 'chromium',
  packages: ['chromium'],
  installed: () => exists(PROGRAM),
}

/** Whether there is a browser; false where JOBBOARD_SKIP says to do without. */
export const hasBrowser = (await provide(CHROMIUM, { here: true })) !== 'skip'

/** Starts the browser. The caller closes it. */
export function startBrowser(): Promise<Browser> {
  // Chromium's sandbox does not start as root, and the shared memory of a container is small.
  return chromium.launch({ executablePath: PROGRAM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
