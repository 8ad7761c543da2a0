// Lets the search work where the site is opened from a disk: browsers refuse workers of files, so what a
// worker would run runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame.contentWindow;
      this.waiting = [];
      this.frame.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.frame.importScripts = (...urls) =>
        urls.reduce((done, each) => done.then(() => this.load(new URL(each, url).href)), Promise.resolve());
      this.load(new URL(url, location.href).href).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }
    load(url) {
      return new Promise((done, failed) => {
        const script = this.frame.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        this.frame.document.body.append(script);
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.frameElement.remove();
    }
  };
}
