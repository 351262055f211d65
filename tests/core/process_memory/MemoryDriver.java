package org.apache.flink.runtime.clusterframework;
import java.io.*;
import org.apache.flink.configuration.*;
import org.apache.flink.runtime.clusterframework.*;
import org.apache.flink.runtime.jobmanager.*;

/** Reads lines of "tm key=value;key=value" and "jm ..."; prints the parts by Flink, in bytes, or the error. */
public class MemoryDriver {
  public static void main(String[] a) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] kv = line.substring(3).split(";");
      Configuration c = new Configuration();
      for (String each : kv) if (!each.isEmpty()) { int at = each.indexOf('='); c.setString(each.substring(0, at), each.substring(at + 1)); }
      try {
        if (line.startsWith("tm")) {
          TaskExecutorProcessSpec s = TaskExecutorProcessUtils.processSpecFromConfig(c);
          System.out.println("ok " + s.getFrameworkHeapSize().getBytes() + " " + s.getTaskHeapSize().getBytes() + " " + s.getFrameworkOffHeapMemorySize().getBytes() + " " + s.getTaskOffHeapSize().getBytes() + " " + s.getManagedMemorySize().getBytes() + " " + s.getNetworkMemSize().getBytes() + " " + s.getJvmMetaspaceSize().getBytes() + " " + s.getJvmOverheadSize().getBytes() + " " + s.getTotalFlinkMemorySize().getBytes() + " " + s.getTotalProcessMemorySize().getBytes());
        } else {
          JobManagerProcessSpec s = JobManagerProcessUtils.processSpecFromConfig(c);
          System.out.println("ok " + s.getJvmHeapMemorySize().getBytes() + " " + s.getJvmDirectMemorySize().getBytes() + " " + s.getJvmMetaspaceSize().getBytes() + " " + s.getJvmOverheadSize().getBytes() + " " + s.getTotalFlinkMemorySize().getBytes() + " " + s.getTotalProcessMemorySize().getBytes());
        }
      } catch (Throwable e) { System.out.println("error " + e.getMessage()); }
    }
  }
}
