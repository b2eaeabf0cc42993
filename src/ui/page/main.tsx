/** The dashboard's page: put into the document that the server makes. */
import { render } from 'preact'
import './styles/app.css'
import { isHelpOpen } from './parts/dialogs.tsx'
import { Shell } from './shell/shell.tsx'
import { startKeyboard } from './state/keyboard.ts'
import { startLive } from './state/live.ts'
import { readSession } from './state/session.ts'

const root = document.getElementById('app')
if (root !== null) {
  render(<Shell />, root)
  startKeyboard(() => {
    isHelpOpen.value = true
  })
  startLive()
  void readSession()
}
