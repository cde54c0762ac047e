// Starts cute-lsp for files of MLIR and Python; the setting cute.server is its command.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("cute").get("server");
  client = new LanguageClient(
    "cute",
    "CuTe",
    { command, args },
    { documentSelector: ["mlir", "python"].flatMap((language) => [{ scheme: "file", language }, { scheme: "untitled", language }]) },
  );
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `cute-lsp does not start: ${error.message ?? error}. Install it with pip install 'cute-dialect[lsp]', or set cute.server.`,
    );
  }
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("cute.restart", async () => {
      await deactivate();
      await start();
    }),
  );
  await start();
}

async function deactivate() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

module.exports = { activate, deactivate };
